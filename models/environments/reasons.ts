import { detailOf as detailOfComputer } from '../computers/reasons.ts';

/** Why a build failed, for people. Other codes are those of computers. */
const details: Readonly<Record<string, string>> = {
  STEP_FAILED: 'A step ended with an error. The log has its output.',
  STEP_TIMED_OUT: 'A step took longer than the operator allows.',
  STEP_OUT_OF_MEMORY: 'A step needed more memory than the computer of the build may use.',
  BUILD_INTERRUPTED:
    'The computer of the build was stopped or lost during a step. Build again: earlier steps are kept.',
  BUILD_FORBIDDEN:
    'Who asked for the build may not build any more: no editor of the space, disabled, or with a key that is not valid.',
  BUILDER_DELETED: 'The computer of the build was deleted.',
  ENVIRONMENT_FILE_GONE: 'A file that the build copies was removed or changed meanwhile. Build again.',
  ENVIRONMENTS_UNAVAILABLE: 'No host here can run computers with a system of their own.',
  TOO_MANY_COMPUTERS:
    'The space has as many computers as it may have, so there is none for the build. Delete one first.',
  TOO_MUCH_DISK:
    'The disk limits of the space’s computers leave none for the computer of the build. Delete a computer first.',
  TOO_MUCH_MEMORY:
    'The running computers of the space leave no memory for that of the build. Stop one, and the build goes on.',
  TOO_MANY_RUNNING: 'The space has reached its maximum of running computers. Stop one, and the build goes on.',
  NO_HOST: 'No host has room for the computer of the build now.',
  WORKFLOW_LOST: 'The build was ended by an operator or lost by the workflow server.',
  BUILD_FAILED: 'The build failed; the server’s log says why.',
};

/** The code that is stored for a failed build. */
export function reasonOfBuild(code: string): string {
  return detailOfBuild(code) === '' ? 'BUILD_FAILED' : code;
}

export function detailOfBuild(code: string): string {
  return details[code] ?? detailOfComputer(code);
}
