import { readdirSync } from 'node:fs';
import type { Environment } from '../../../config/index.ts';
import type { ChatUser } from '../../builders/chat.ts';
import type { TestProduct } from '../../builders/product.ts';

/** One path through a workflow. It uses the public API, and its history is saved. */
export interface Scenario {
  /** Path of the file below `histories/`: the workflow's name, a slash, and the scenario's name. */
  name: string;
  /** Environment variables that the scenario needs, or a function that starts a server and returns them. */
  environment?: Environment | (() => Promise<Environment>);
  /** Saves the history of the first run instead of the last, for a workflow that continues as new. */
  ofFirstRun?: true;
  /**
   * Runs the scenario in its own Atrium with its own user, and returns the id of the workflow. The workflow has ended
   * by then, or ends soon.
   */
  run(product: TestProduct, user: ChatUser): Promise<string>;
  /** Ends what is still running after its Atrium has closed. */
  close?(): Promise<void>;
}

/** Every scenario whose history is saved: those that the files of this folder export. */
export const scenarios = await allScenarios();

async function allScenarios(): Promise<Scenario[]> {
  const files = readdirSync(import.meta.dirname).filter((file) => file.endsWith('.ts') && file !== 'scenario.ts');
  const modules: object[] = await Promise.all(files.map((file) => import(`./${file}`)));
  return modules
    .flatMap((exported) => Object.entries(exported))
    .flatMap(([name, value]) => (name.endsWith('Scenarios') ? (value as Scenario[]) : []));
}
