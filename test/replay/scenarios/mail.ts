import { mainTaskQueue } from '../../../temporal/taskQueues.ts';
import type { TestProduct } from '../../builders/product.ts';
import { mailServerUrl, startMailServer } from '../../fakes/mailServer.ts';
import { completedWorkflow } from '../histories.ts';
import type { Scenario } from './scenario.ts';

/** Fixed, because Atrium has to know it before it starts. Only the recording listens on it. */
const port = 25_925;

const environment = {
  ATRIUM_SIGN_UP: 'open',
  ATRIUM_SMTP_URL: mailServerUrl(port),
  ATRIUM_SMTP_FROM: 'atrium@example.com',
};

export const mailScenarios: Scenario[] = [
  { name: 'sendMail/sent', environment, run: (product) => sendOne(product, undefined, 'Completed') },
  { name: 'sendMail/refused', environment, run: (product) => sendOne(product, 550, 'Failed') },
];

/** Asks for a sign-in link by mail, and waits until its workflow has ended with `status`. */
async function sendOne(product: TestProduct, refuseWith: number | undefined, status: string): Promise<string> {
  const mailServer = await startMailServer({ port });
  mailServer.refuseWith = refuseWith;
  try {
    await fetch(`${product.url}/auth/email`, {
      method: 'POST',
      body: new URLSearchParams({ email: 'somebody@example.com' }),
    });
    const { config } = product.environment;
    const query = `TaskQueue = '${mainTaskQueue(config.installation)}' AND WorkflowType = 'sendMail'`;
    return await completedWorkflow(config, query, status);
  } finally {
    await mailServer.close();
  }
}
