import { randomBytes } from 'node:crypto';
import { createRedactor } from '../models/secrets/redactor.ts';
import { secretForms } from '../telemetry/secretForms.ts';

// Compares redaction with one pass of `indexOf` over the same text, and with a search for each form by itself. `npx
// node bench/redaction.ts`

const text = (() => {
  const words =
    'the of and to in is you that it was for on are with as his they be at one have this from or had by'.split(' ');
  let out = '';
  for (let index = 0; out.length < 1_048_576; index++)
    out += `${words[(index * 7_919) % words.length]} ${index % 13 === 0 ? index : ''}`;
  return out;
})();

function best(times: number, run: () => unknown): number {
  const took = Array.from({ length: times }, () => {
    const begun = performance.now();
    run();
    return performance.now() - begun;
  });
  return Math.min(...took);
}

const ms = (time: number) => `${time.toFixed(time < 10 ? 2 : 0)} ms`;
// This string does not occur, but all its characters do: a fair single pass.
const pass = best(20, () => text.indexOf('the zebra of'));
console.log(`1 MiB of text; one pass of indexOf: ${ms(pass)}`);
console.log('secrets   forms    built    read     ratio to one pass    masked in 64 KiB    each form by itself');
for (const count of [1, 10, 100, 500]) {
  const forms = Array.from({ length: count }, () =>
    secretForms(`sk_live_${randomBytes(18).toString('base64url')}`),
  ).flat();
  let redactor = createRedactor([]);
  const built = best(3, () => {
    redactor = createRedactor(forms);
  });
  const read = best(5, () => redactor.text(text));
  const bytes = Buffer.from(text);
  const masked = best(5, () => {
    const mask = redactor.mask();
    for (let at = 0; at < bytes.length; at += 65_536) mask.push(bytes.subarray(at, at + 65_536));
    return mask.end();
  });
  const byItself = best(1, () => forms.filter((form) => text.includes(form)));
  const cells = [count, forms.length, ms(built), ms(read), (read / pass).toFixed(0), ms(masked), ms(byItself)];
  console.log(cells.map((cell, index) => String(cell).padEnd([9, 8, 8, 8, 20, 19, 0][index] ?? 0)).join(' '));
}
const large = secretForms(Array.from({ length: 1_000 }, () => randomBytes(24).toString('base64')).join('\n'));
console.log(
  `a secret of 33 KB in 1,000 lines: ${large.length} forms, built in ${ms(best(2, () => createRedactor(large)))}`,
);
