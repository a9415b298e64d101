import { checkModels, checkPush } from '../../bin/support/checkChat.ts';
import { type Config, loadConfig } from '../../config/index.ts';
import { stackEnvironment } from '../support/environment.ts';
import { temporaryFolder } from '../support/folders.ts';

// The checks of `atrium doctor` for models and push notifications.

function configWith(changes: Record<string, string> = {}): Config {
  return loadConfig({ ...stackEnvironment(), ATRIUM_DATA_DIR: temporaryFolder(), ...changes });
}

test('the check of models counts them, and fails for a title model that is not among them', () => {
  expect(checkModels(configWith()).state).toBe('off');
  const settings = { ATRIUM_COMPATIBLE_BASE_URL: 'http://127.0.0.1:1', ATRIUM_COMPATIBLE_MODELS: 'one,two' };
  expect(checkModels(configWith(settings))).toEqual({ state: 'ok', detail: '2 models, one by default' });
  expect(() => checkModels(configWith({ ...settings, ATRIUM_TITLE_MODEL: 'three' }))).toThrow(
    'ATRIUM_TITLE_MODEL "three" is not among the usable models: one, two.',
  );
});

test('the check of push notifications shows the contact for push services', () => {
  expect(checkPush(configWith()).state).toBe('off');
  expect(checkPush(configWith({ ATRIUM_PUSH_CONTACT: 'ops@example.com' })).detail).toBe(
    'contact mailto:ops@example.com',
  );
  expect(checkPush(configWith({ ATRIUM_PUBLIC_URL: 'https://atrium.example.com' })).state).toBe('ok');
  expect(() => configWith({ ATRIUM_PUSH_CONTACT: 'nobody' })).toThrow('ATRIUM_PUSH_CONTACT');
});
