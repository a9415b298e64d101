/** Where computers find the certificates. */
export interface TrustPaths {
  /** All authorities that are trusted: the system’s and the installation’s own. */
  bundle: string;
  /**
   * The installation's own, and those that were added to the system's: for programs that bring the public ones along.
   */
  own: string;
}

const proxy = 'http://127.0.0.1:3128';
const direct = 'localhost,.localhost,127.0.0.1,::1';

/**
 * Variables for everything that runs on a computer: its proxy, for programs that use one (the others are served by host
 * name), and the authorities that they trust. Programs differ in which variables they read, and in their case.
 */
export function computerEnvironment(trust?: TrustPaths): Record<string, string> {
  const variables = { HTTP_PROXY: proxy, HTTPS_PROXY: proxy, ALL_PROXY: proxy, NO_PROXY: direct };
  const lower = Object.entries(variables).map(([name, value]) => [name.toLowerCase(), value]);
  return {
    ...variables,
    ...Object.fromEntries(lower),
    NODE_USE_ENV_PROXY: '1',
    ...(trust !== undefined && trustVariables(trust)),
  };
}

function trustVariables({ bundle, own }: TrustPaths): Record<string, string> {
  const readers = [
    'SSL_CERT_FILE', // OpenSSL, Go, Ruby, rustls
    'CURL_CA_BUNDLE',
    'GIT_SSL_CAINFO',
    'REQUESTS_CA_BUNDLE', // Python
    'PIP_CERT',
    'AWS_CA_BUNDLE',
    'CARGO_HTTP_CAINFO',
    'GRPC_DEFAULT_SSL_ROOTS_FILE_PATH',
    'CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE',
    'NPM_CONFIG_CAFILE',
    'DENO_CERT',
  ];
  return { ...Object.fromEntries(readers.map((name) => [name, bundle])), NODE_EXTRA_CA_CERTS: own };
}
