import { serve } from './support/serve.ts';
import { readyMark } from './support/watchedProduct.ts';

/** `npm run dev` restarts this program: the API and a worker, against parts that already run. */
const [logFile] = process.argv.slice(2);
process.exit(await serve('both', { logFile, onReady: ({ apiUrl }) => console.log(`${readyMark}${apiUrl}`) }));
