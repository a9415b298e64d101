import { createRequire, flushCompileCache } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(import.meta.url);

/**
 * Loads test files as Node loads any module: it strips types, caches compiled code, and keeps loaded modules for the
 * worker's next file. Jest's own runtime loads everything again for each file, which took half of a run's time.
 */
export default class NodeRuntime {
  requireModule = require;

  /** Loads Jest's test framework. It keeps state in its module, so each file gets a new one. */
  requireInternalModule(path) {
    delete require.cache[path];
    return require(path);
  }

  setGlobalsForRuntime(globals) {
    Object.assign(globalThis, globals);
  }

  unstable_shouldLoadAsEsm() {
    return true;
  }

  unstable_importModule(path) {
    return import(pathToFileURL(path).href);
  }

  getSourceMaps() {
    return new Map();
  }

  getAllCoverageInfoCopy() {}

  enterTestCode() {}

  leaveTestCode() {}

  /** A worker may be killed, and would leave no compile cache for the next run. */
  teardown() {
    flushCompileCache();
  }
}
