import { ModernFakeTimers } from '@jest/fake-timers';
import { ModuleMocker } from 'jest-mock';
import { removeTemporaryFolders } from '../folders.ts';

const timeoutSymbol = Symbol.for('TEST_TIMEOUT_SYMBOL');
const circusSymbols = ['JEST_STATE_SYMBOL', 'EVENT_HANDLERS', 'TEST_TIMEOUT_SYMBOL', 'RETRY_TIMES'];

/** Test files of one worker share its globals. This undoes their changes to globals. */
export default class SharedEnvironment {
  // For each file, Jest sets its console on this object and wraps process.exit. On the real global these would pile up.
  global = Object.create(globalThis, { process: { value: {} } });
  moduleMocker = new ModuleMocker(globalThis);
  fakeTimersModern;
  #variables = { ...process.env };
  #console = globalThis.console;

  constructor({ projectConfig }, { console }) {
    this.fakeTimersModern = new ModernFakeTimers({ config: projectConfig, global: globalThis });
    globalThis.console = console;
    globalThis.jest = this.#jestObject();
  }

  async setup() {}

  async teardown() {
    this.fakeTimersModern.dispose();
    this.moduleMocker.restoreAllMocks();
    globalThis.console = this.#console;
    for (const symbol of Object.getOwnPropertySymbols(globalThis)) {
      if (circusSymbols.includes(symbol.description)) delete globalThis[symbol];
    }
    for (const name of Object.keys(process.env)) if (!(name in this.#variables)) delete process.env[name];
    Object.assign(process.env, this.#variables);
    removeTemporaryFolders();
  }

  getVmContext() {
    return null;
  }

  exportConditions() {
    return ['node', 'node-addons'];
  }

  /** The part of Jest's object that the tests use. Modules cannot be mocked. */
  #jestObject() {
    const { moduleMocker: mocker, fakeTimersModern: timers } = this;
    const jest = {
      fn: mocker.fn.bind(mocker),
      spyOn: mocker.spyOn.bind(mocker),
      restoreAllMocks: () => mocker.restoreAllMocks(),
      useFakeTimers: (options) => timers.useFakeTimers(options),
      useRealTimers: () => timers.useRealTimers(),
      advanceTimersByTime: (ms) => timers.advanceTimersByTime(ms),
      setTimeout: (ms) => {
        globalThis[timeoutSymbol] = ms;
      },
    };
    return jest;
  }
}
