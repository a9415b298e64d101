import { bundle } from './bundle.ts';

/**
 * Prints the program whose entry is its argument, as JSON. In a process of its own, since Node says whenever it strips
 * types that this is an experiment, and a host’s operator has no use for that.
 */
process.stdout.write(JSON.stringify(bundle(process.argv[2] ?? '')));
