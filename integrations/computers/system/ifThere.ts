/** Undefined where the file, folder or process is not, or no longer, there. */
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
