import TestRunner from 'jest-runner';

/**
 * Runs test files in worker processes, also a single file: the process of the run has the stack in it, and test files
 * change globals. No more workers are started than there are files.
 */
export default class WorkerRunner extends TestRunner {
  runTests(tests, watcher, options) {
    const maxWorkers = Math.min(this._globalConfig.maxWorkers, tests.length);
    this._globalConfig = Object.freeze({ ...this._globalConfig, maxWorkers });
    return super.runTests(tests, watcher, { ...options, serial: false });
  }
}
