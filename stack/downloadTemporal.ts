import { TestWorkflowEnvironment } from '@temporalio/testing';

/**
 * Run as a program: `downloadTemporal.ts FOLDER VERSION`. Starting the official test environment is the only way to its
 * downloader; the server it starts is stopped again at once.
 */
const [folder, version] = process.argv.slice(2);
const environment = await TestWorkflowEnvironment.createLocal({
  server: { executable: { type: 'cached-download', downloadDir: folder, version: `v${version}` } },
});
await environment.teardown();
