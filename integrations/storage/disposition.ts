/** Types that a browser shows without running anything in them. All other types are only saved. */
const shown =
  /^(image\/(png|jpeg|gif|webp|avif|apng|bmp)|audio\/[\w.+-]+|video\/[\w.+-]+|text\/plain|application\/pdf)$/;

/**
 * The Content-Disposition of a file (RFC 6266): shown inline if that is safe, else saved. HTML, SVG and XML are never
 * shown, because they would run as pages of the origin that serves them. The name is given twice, plain and in full
 * (RFC 8187).
 */
export function contentDisposition(file: { name: string; contentType: string }, forceDownload = false): string {
  const type = !forceDownload && shown.test(file.contentType) ? 'inline' : 'attachment';
  const plain = file.name.replace(/[^\x20-\x7E]|["\\%]/g, '_');
  const full = encodeURIComponent(file.name).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `${type}; filename="${plain}"; filename*=UTF-8''${full}`;
}

/** The Content-Type that a file is served with. Text is always UTF-8: detection accepts nothing else as text. */
export function servedContentType(contentType: string): string {
  return contentType.startsWith('text/') ? `${contentType}; charset=utf-8` : contentType;
}
