import { bundle } from './bundle.ts';

/**
 * Prints the bundle of its argument as JSON. It is a process of its own, since Node warns that stripping types is an
 * experiment, which would confuse a host's operator.
 */
process.stdout.write(JSON.stringify(bundle(process.argv[2] ?? '')));
