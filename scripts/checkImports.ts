import { checkImports, readSources } from './imports/check.ts';

/**
 * `npm run lint` runs it: prints each import that goes against the arrows of the design, and fails when there is one.
 */
const problems = checkImports(readSources('.'));
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exit(1);
