import { checkImports, readSources } from './imports/check.ts';

/**
 * `npm run lint` runs this. Prints each import that breaks the rules in scripts/imports/, and fails if there is one.
 */
const problems = checkImports(readSources('.'));
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exit(1);
