import { operationModels } from '../../models/operations/operation.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { connectTemporal } from '../../temporal/connection.ts';
import { actorWorkflowId, operationWorkflowId, turnWorkflowId } from '../../temporal/workflowIds.ts';
import { appsOf, manifestOf } from '../builders/app.ts';
import type { ChatUser } from '../builders/chat.ts';
import { driveOf } from '../builders/drive.ts';
import { buildProduct, fake, type TestProduct } from '../builders/product.ts';
import { waitFor } from '../support/waitFor.ts';

/** The search attributes by which an operator finds workflows. */
let product: TestProduct;
let user: ChatUser;
let temporal: Awaited<ReturnType<typeof connectTemporal>>;
beforeAll(async () => {
  product = await buildProduct();
  user = await product.user();
  temporal = await connectTemporal(product.environment.config, createLogger({ level: 'silent' }));
});
afterAll(async () => {
  await temporal.close();
  await product.close();
});

/** The ids that the server lists for this user's space; the list is a second behind. */
async function found(query: string): Promise<string[]> {
  const ids: string[] = [];
  const inSpace = `SpaceId = '${user.spaceId}' AND ${query}`;
  for await (const { workflowId } of temporal.client.workflow.list({ query: inSpace })) ids.push(workflowId);
  return ids;
}

/** What the page of a turn's workflow says in the Temporal UI. */
async function detailsOf(turnId: string): Promise<unknown> {
  const workflow = temporal.client.workflow.getHandle(turnWorkflowId(turnId));
  const { currentDetails } = await workflow.query<{ currentDetails: string }>('__temporal_workflow_metadata');
  return currentDetails;
}

test('A failed turn is found by its outcome, and an answered turn has no outcome', async () => {
  const failed = await user.ask({ content: fake({ status: 400 }), modelId: 'fake-1' });
  await user.ended(failed.turnId);
  const answered = await user.ask({ content: 'Hello', modelId: 'demo' });
  await user.ended(answered.turnId);
  const failures = await waitFor('the failed turn', async () => {
    const ids = await found(`Kind = 'turn' AND Outcome = 'failed' AND UserId = '${user.id}'`);
    return ids.length > 0 && ids;
  });
  expect(failures).toEqual([turnWorkflowId(failed.turnId)]);
  const { searchAttributes } = await temporal.client.workflow.getHandle(turnWorkflowId(answered.turnId)).describe();
  expect(searchAttributes).not.toHaveProperty('Outcome');
  expect(await detailsOf(answered.turnId)).toBe('Turn: completed');
  expect(await detailsOf(failed.turnId)).toMatch(/^Turn: failed/);
});

test('A failed app run is found by its outcome and its user', async () => {
  const apps = appsOf(product, user);
  const { runId } = (await apps.run(await apps.app(manifestOf('make')))).body;
  await apps.ended(runId);
  const failures = await waitFor('the failed run', async () => {
    const ids = await found(`Kind = 'appRun' AND Outcome = 'failed' AND UserId = '${user.id}'`);
    return ids.length > 0 && ids;
  });
  expect(failures).toEqual([actorWorkflowId('appRun', runId)]);
  // Its result says so too, as that of a turn does.
  expect(await temporal.client.workflow.getHandle(actorWorkflowId('appRun', runId)).result()).toBe('failed');
});

test('A mistake of a client is found as refused, and not as failed', async () => {
  const drive = driveOf(product, user);
  const begun = await drive.send('POST', '/uploads', { path: '/large', size: 7 });
  const { id } = (await begun.json()) as { id: string };
  expect((await drive.send('POST', `/uploads/${id}/complete`)).status).toBe(409);
  const operation = await operationModels(product.environment.database).Operation.findOne({ where: { subjectId: id } });
  expect(operation).toMatchObject({ status: 'failed', errorCode: 'UPLOAD_INCOMPLETE' });
  const refused = await waitFor('the refused upload', async () => {
    const ids = await found("Outcome = 'refused'");
    return ids.length > 0 && ids;
  });
  expect(refused).toEqual([operationWorkflowId('completeUpload', String(operation?.id))]);
});
