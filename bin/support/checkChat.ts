import type { Config } from '../../config/index.ts';
import { createCatalogue } from '../../integrations/chat/catalogue.ts';
import { off, ok } from './check.ts';

/** Whether the settings give a valid catalogue. Reports a wrong file or name in one line. */
export function checkModels({ llm }: Config) {
  const catalogue = createCatalogue(llm);
  const models = catalogue.list();
  if (models.every(({ adapter }) => adapter === 'demo'))
    return off('only the demo model; docs/models.md says how to add one');
  return ok(`${models.length} models, ${catalogue.defaultModelId} by default`);
}

/** Apple's push service refuses pushes without the sender's contact. */
export function checkPush({ push }: Config) {
  if (push.subject !== 'mailto:nobody@localhost') return ok(`contact ${push.subject}`);
  return off('not to Apple’s devices, until ATRIUM_PUSH_CONTACT or an https ATRIUM_PUBLIC_URL is set');
}
