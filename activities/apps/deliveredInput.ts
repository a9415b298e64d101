import type { contentOf } from '../../models/apps/deliveries.ts';

/** A delivery as its process gets it: the body as its standard input, and the rest as variables. */
export function asInput({ method, query, headers, body, deliveryId, auth }: Awaited<ReturnType<typeof contentOf>>) {
  const env = {
    ATRIUM_WEBHOOK_METHOD: method,
    ATRIUM_WEBHOOK_QUERY: query,
    ATRIUM_WEBHOOK_HEADERS: JSON.stringify(headers),
    ATRIUM_WEBHOOK_AUTH: auth,
    ...(deliveryId !== null && { ATRIUM_WEBHOOK_ID: deliveryId }),
  };
  return { env, stdin: body.toString('base64') };
}
