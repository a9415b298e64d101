import { join } from 'node:path';
import { columns } from './answer.ts';

export interface ScreenFacts {
  apiUrl: string;
  temporalUiUrl: string | undefined;
  logFile: string;
  email: string;
  /** The checkout, so that the printed lines work in any folder. */
  root: string;
  dataDir: string;
}

/** The text that a person needs once everything runs. */
export function readyScreen(facts: ScreenFacts): string {
  // Names the data directory where it is not the default. Otherwise the command would use another installation, whose
  // token is useless here.
  const where = facts.dataDir === join(facts.root, '.atrium') ? '' : `ATRIUM_DATA_DIR=${shellQuote(facts.dataDir)} `;
  const command = `${where}npm --prefix ${shellQuote(facts.root)} run -s atrium -- token`;
  const places: [string, string][] = [
    ['API', facts.apiUrl],
    ['Reference', `${facts.apiUrl}/docs`],
    ...(facts.temporalUiUrl === undefined ? [] : [['Temporal UI', facts.temporalUiUrl] as [string, string]]),
    ['Log', facts.logFile],
  ];
  return `
${columns(places)}

  A session token for ${facts.email}, good for 12 hours:
  ${command}

  A first answer, from another terminal:
  curl -N ${facts.apiUrl}/chat/stream -H "Authorization: Bearer $(${command})" -H 'Content-Type: application/json' -d '{"content":"Hello"}'

  Ctrl-C stops everything.
`;
}

/** Quotes only where needed, so that a usual path stays readable. */
function shellQuote(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}
