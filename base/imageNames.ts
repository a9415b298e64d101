/** An image of a registry. */
export interface ImageName {
  /** A host, with its port if it has one. */
  registry: string;
  repository: string;
  tag: string;
  /** Instead of the tag, such as `sha256:…`. */
  digest: string | undefined;
}

const registryForm = /^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])(?::\d{1,5})?$/;
const partForm = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/;
const tagForm = /^\w[\w.-]{0,127}$/;
const digestForm = /^sha256:[0-9a-f]{64}$/;
const mostLetters = 400;

export const isRegistry = (text: string) => registryForm.test(text);

/**
 * Reads the name of an image, which begins with its registry: `registry.example.org/team/image:tag`, or `@sha256:…`
 * instead of the tag. Undefined if it is none.
 */
export function imageNameOf(text: string): ImageName | undefined {
  const [, registry = '', rest = ''] = /^([^/]+)\/(.+)$/s.exec(text) ?? [];
  const isHost = registry === 'localhost' || /[.:]/.test(registry);
  if (text.length > mostLetters || !isHost || !isRegistry(registry)) return undefined;
  const [named = '', digest, ...others] = rest.split('@');
  const [, repository = '', tag = 'latest'] = /^([^:]*)(?::(.*))?$/s.exec(named) ?? [];
  const isWhole = others.length === 0 && repository.split('/').every((part) => partForm.test(part));
  if (!isWhole || !tagForm.test(tag) || (digest !== undefined && !digestForm.test(digest))) return undefined;
  return { registry, repository, tag, digest };
}

/** The name of an image by its digest. Its content never changes. */
export function pinnedImage({ registry, repository }: ImageName, digest: string): string {
  return `${registry}/${repository}@${digest}`;
}
