/** Tests in their own processes find the stack by these: the variables of config/, with TEST_ in the name. */
export const testVariablePrefix = 'ATRIUM_TEST_STACK_';
