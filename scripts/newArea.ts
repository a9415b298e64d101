import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';

/*
 * `npm run new-area reminders`: writes a small working area (a contract, routes, a table, a workflow with its sweep, a
 * test, a scenario for the replay, and a page) and adds one line to each layer's list of areas. The templates are in
 * scripts/newArea/, where the area is called "widgets".
 */
const root = path.resolve(import.meta.dirname, '..');
const templates = path.join(import.meta.dirname, 'newArea');

const [name = '', singular = name.replace(/s$/, '')] = process.argv.slice(2);
if (!/^[a-z][a-zA-Z]*s$/.test(name) || singular === name) {
  console.error(
    'Usage: npm run new-area NAMES [NAME]   a plural in camelCase, and its singular: new-area entries entry',
  );
  process.exit(1);
}

const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);
const prefix = singular.toLowerCase().slice(0, 4);
const words: [RegExp, string][] = [
  [/Widgets/g, capital(name)],
  [/widgets/g, name],
  [/Widget/g, capital(singular)],
  [/widget/g, singular],
  [/WIDGETS/g, name.replace(/[A-Z]/g, '_$&').toUpperCase()],
  [/PREFIX/g, prefix],
];
const named = (text: string) => words.reduce((all, [word, by]) => all.replace(word, by), text);

/** The line of the area in each layer's list. */
const lines: Record<string, string> = {
  'api/areas.ts': "export { widgets } from './widgets/index.ts';",
  'models/areas.ts': "export { widgetsSchema as widgets } from './widgets/schema.ts';",
  'activities/areas.ts': "export { widgets } from './widgets/index.ts';",
  'workflows/index.ts': "export { widget } from './widgets/widget.ts';",
  'temporal/launchers/areas.ts': "export { createWidgetLauncher as widgets } from './widgets.ts';",
};

const written = Object.keys(lines);
for (const [file, line] of Object.entries(lines)) {
  const whole = path.join(root, file);
  const text = readFileSync(whole, 'utf8');
  if (text.includes(named(line))) {
    console.error(`There is an area ${name} already.`);
    process.exit(1);
  }
  writeFileSync(whole, `${text}${named(line)}\n`);
}
for (const file of readdirSync(templates, { recursive: true, encoding: 'utf8' }).filter((each) =>
  each.endsWith('.txt'),
)) {
  const target = path.join(root, named(file).replace(/\.txt$/, ''));
  await mkdir(path.dirname(target), { recursive: true });
  writeFileSync(target, named(readFileSync(path.join(templates, file), 'utf8')), { flag: 'wx' });
  written.push(path.relative(root, target));
}
execFileSync('npx', ['--no-install', 'biome', 'check', '--write', ...written], { cwd: root, stdio: 'ignore' });
console.log(`${written.join('\n')}

Next, run "npm run contract" for the types, and "npm test -- test/api/${name}". Once the workflow is as you want it, run
"npm run record-histories": until then the test in test/replay fails. Say in docs/${name}.md what ${name} are for.`);
