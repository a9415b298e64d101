import { operationModels } from '../../../models/operations/operation.ts';
import { operationWorkflowId } from '../../../temporal/workflowIds.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { driveOf } from '../../builders/drive.ts';
import type { TestProduct } from '../../builders/product.ts';
import type { Scenario } from './scenario.ts';

export const driveScenarios: Scenario[] = [
  {
    name: 'completeUpload/placed',
    async run(product, user) {
      const { drive, upload } = await beginUpload(product, user);
      for (const { url } of upload.parts) await fetch(url, { method: 'PUT', body: 'content' });
      await drive.send('POST', `/uploads/${upload.id}/complete`);
      return operationOf(product, user, 'completeUpload');
    },
  },
  {
    name: 'completeUpload/refused',
    async run(product, user) {
      const { drive, upload } = await beginUpload(product, user);
      await drive.send('POST', `/uploads/${upload.id}/complete`);
      return operationOf(product, user, 'completeUpload');
    },
  },
  {
    name: 'purgeTrash/item',
    async run(product, user) {
      const drive = driveOf(product, user);
      const { id } = await drive.put('/a/b.txt');
      await drive.send('DELETE', `/items/${id}?permanent=true`);
      return operationOf(product, user, 'purgeItem');
    },
  },
  {
    name: 'purgeTrash/emptied',
    async run(product, user) {
      const drive = driveOf(product, user);
      const { id } = await drive.put('/a/b.txt');
      await drive.send('DELETE', `/items/${id}`);
      await drive.send('DELETE', '/trash');
      return operationOf(product, user, 'emptyTrash');
    },
  },
  {
    name: 'purgeDeleted/spaceWithFiles',
    async run(product, user) {
      await driveOf(product, user).put('/a/b.txt');
      await user.fetch(`/api/spaces/${user.spaceId}`, { method: 'DELETE' });
      return operationOf(product, user, 'deleteSpace');
    },
  },
];

async function beginUpload(product: TestProduct, user: ChatUser) {
  const drive = driveOf(product, user);
  const response = await drive.send('POST', '/uploads', { path: '/large', size: 'content'.length });
  return { drive, upload: (await response.json()) as { id: string; parts: { url: string }[] } };
}

async function operationOf(product: TestProduct, { spaceId }: ChatUser, kind: string): Promise<string> {
  const { id } = await operationModels(product.environment.database).Operation.findOne({
    where: { kind, spaceId },
    rejectOnEmpty: true,
  });
  return operationWorkflowId(kind, id);
}
