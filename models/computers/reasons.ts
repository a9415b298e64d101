/** Why a computer is in `error`, or stopped by itself, for people. */
const details: Readonly<Record<string, string>> = {
  HOST_LOST: 'The host of the computer does not answer.',
  HOST_REMOVED:
    'The host of the computer was removed for good, and the computer’s home with it. If the home was never saved, recover the computer with discardHome to start with an empty one.',
  NO_HOST: 'No host can run the computer now.',
  BASES_OFF: 'The host cannot make the system of the computer; the host’s log says why.',
  BASE_FAILED: 'The host could not make the system of the computer; the host’s log says why.',
  ENVIRONMENTS_UNAVAILABLE: 'No host here can run computers with a system of their own now.',
  IMAGES_OFF: 'The host cannot take the image from its registry; the host’s log says why.',
  IMAGE_NOT_FOUND: 'The registry does not have the image.',
  IMAGE_ACCESS_DENIED: 'The registry does not give the image to this installation. The operator sets the credentials.',
  IMAGE_DAMAGED: 'The registry sent something else than the image that was asked for.',
  IMAGE_UNSUPPORTED: 'The image is for other machines, or has something that computers cannot have.',
  IMAGE_TOO_LARGE: 'The image is larger, or has more files, than the operator allows.',
  IMAGE_FAILED: 'The image could not be fetched and unpacked; the host’s log says why.',
  REGISTRY_UNREACHABLE: 'The registry of the image cannot be reached, or fails.',
  REGISTRY_TIMED_OUT: 'The registry of the image did not answer in time.',
  COMPUTERS_OFF: 'The host cannot run computers now; the host’s log says why.',
  TIMED_OUT: 'The host of the computer did not finish in time.',
  START_FAILED: 'The computer did not start; the host’s log says why.',
  DISK_FULL: 'The disk of its host is full.',
  QUOTA_EXCEEDED: 'The files and saved homes of the space take all the bytes that it may store. Delete some.',
  STORAGE_UNAVAILABLE: 'The object store does not answer now.',
  SAVE_TOO_LARGE: 'The home of the computer is far larger than its limit, so it cannot be saved.',
  PATH_TOO_LONG: 'A path in the home is too long to be saved; shorten it.',
  SAVE_UNREADABLE: 'Its home was saved with btrfs, and no host with btrfs can run the computer now.',
  SAVE_BROKEN: 'The saved home of the computer is damaged and cannot be opened.',
  COMPUTER_UNUSED: 'The computer was never used, so it has no home yet.',
  SNAPSHOT_DELETED: 'Another request deleted the snapshot meanwhile.',
  VERSION_DELETED: 'The version of the environment was removed meanwhile.',
  COMPUTER_ENDED: 'The computer ended by itself, or its host was restarted.',
  COMPUTER_NOT_ANSWERING: 'The computer no longer answered and was ended. Its processes are lost; its home is kept.',
  COMPUTER_NOT_RUNNING: 'The computer is not running.',
  COMPUTER_STOPPED: 'Another request stopped the computer meanwhile.',
  COMPUTER_PAUSED: 'Another request paused the computer meanwhile.',
  COMPUTER_WOKEN: 'Another request started the computer meanwhile.',
  COMPUTER_RESTORED: 'Another request restored the computer meanwhile.',
  COMPUTER_DELETED: 'Another request deleted the computer meanwhile.',
  WORKFLOW_LOST: 'An operator ended the work on it, or the workflow server lost it.',
  HOST_FAILED: 'The host of the computer failed; the host’s log says why.',
  TOO_MANY_RUNNING: 'The space has reached its maximum of running computers. Stop one first.',
  CREDITS_EXHAUSTED: 'The space has no credits left.',
  HOST_STOPPED: 'The host was stopped, and all of its computers with it.',
  RESTORED:
    'Atrium was restored from a backup that was made while the computer ran. Its processes are lost; its home is kept.',
  PAUSED_TOO_LONG:
    'The computer was paused for the maximum time and was stopped. Its memory is lost; its home is kept.',
  IDLE: 'The computer was idle, so it was stopped automatically.',
};

/** Codes of hosts, and the codes that stand for them here. */
const sameAs: Readonly<Record<string, string>> = {
  COMPUTER_ABSENT: 'COMPUTER_ENDED',
  GENERATION_ENDED: 'COMPUTER_ENDED',
  GENERATION_OUTDATED: 'COMPUTER_ENDED',
  NO_ROOM_FOR_HOME: 'DISK_FULL',
};

/** The code that is stored for a failure. Codes without a detail become `HOST_FAILED`. */
export function reasonCode(code: string): string {
  const named = sameAs[code] ?? code;
  return Object.hasOwn(details, named) ? named : 'HOST_FAILED';
}

export function detailOf(code: string): string {
  return details[code] ?? '';
}
