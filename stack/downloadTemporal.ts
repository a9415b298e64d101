import { TestWorkflowEnvironment } from '@temporalio/testing';

/**
 * Run as a program: `downloadTemporal.ts FOLDER VERSION`. The official downloader can only be called by starting the
 * test environment. The server that it starts is stopped at once.
 */
const [folder, version] = process.argv.slice(2);
const environment = await TestWorkflowEnvironment.createLocal({
  server: { executable: { type: 'cached-download', downloadDir: folder, version: `v${version}` } },
});
await environment.teardown();
