/** Returns undefined if the file, folder or process does not exist (any more). */
export function ifThere<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH' || code === 'ENODEV' || code === 'ENOTDIR' || code === 'ELOOP')
      return undefined;
    throw error;
  }
}
