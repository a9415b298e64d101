import type { Environment } from '../../../config/index.ts';
import type { ChatUser } from '../../builders/chat.ts';
import type { TestProduct } from '../../builders/product.ts';

/** One path through a workflow, walked through the public API so that its history can be saved. */
export interface Scenario {
  /** The file's path below `histories/`: the workflow's name, a slash, and the path's. */
  name: string;
  /** Variables of config/ that this path needs, or what starts somebody else's server for it and gives them. */
  environment?: Environment | (() => Promise<Environment>);
  /** The history to save is that of its first run, and not of its last, where it went on with a new history. */
  ofFirstRun?: true;
  /**
   * Walks the path in its own running Atrium with its own user, and returns the workflow's id. It must have ended by
   * then, or end soon.
   */
  run(product: TestProduct, user: ChatUser): Promise<string>;
  /** Ends what its Atrium leaves running, after it. */
  close?(): Promise<void>;
}
