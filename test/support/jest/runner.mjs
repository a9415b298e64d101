import TestRunner from 'jest-runner';

/**
 * Runs test files in worker processes, even a single file: the main process runs the stack, and test files change
 * globals. Starts no more workers than there are files.
 */
export default class WorkerRunner extends TestRunner {
  runTests(tests, watcher, options) {
    const maxWorkers = Math.min(this._globalConfig.maxWorkers, tests.length);
    this._globalConfig = Object.freeze({ ...this._globalConfig, maxWorkers });
    return super.runTests(tests, watcher, { ...options, serial: false });
  }
}
