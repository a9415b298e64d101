import { buffer } from 'node:stream/consumers';
import { DomainError } from '../../../base/errors.ts';
import type { ModelCapabilities } from '../../../integrations/chat/catalogue.ts';
import type { DocumentReaders, Reading } from '../../../integrations/readers/documentReaders.ts';
import { isText } from '../../../integrations/storage/contentType.ts';
import { imageSize } from '../../../integrations/storage/imageSize.ts';
import type { ObjectStore } from '../../../integrations/storage/objectStore.ts';
import { isImageType, isPdfType } from '../../../models/chat/attachments.ts';

/** How a model sees a file. */
export type FileView =
  | { kind: 'seen'; mediaType: string; base64: string }
  /** `hasMore`: only the file's beginning was read. */
  | { kind: 'text'; text: string; pageCount?: number; hasMore: boolean }
  | { kind: 'absent'; why: string };

/** A file's bytes, wherever they are stored. The same key always means the same bytes. */
export interface FileSource {
  key: string;
  contentType: string;
  size: number;
  read(range?: { start: number; end: number }): Promise<Buffer>;
}

/** Limits for one image and for one document that every provider accepts. Some accept larger images. */
const maxImageBytes = 3_750_000;
/** In pixels. A file of a few kilobytes can claim to be gigabytes of pixels. */
const maxImageSide = 8_000;
const maxSeenPdfBytes = 10_000_000;
const maxReadPdfBytes = 50_000_000;
/** More text than any budget allows. */
const maxTextBytes = 2_000_000;
const cacheBytes = 64 * 1_048_576;

/**
 * Reads attached files for prompts. A turn of many steps asks for the same files each time, so their content is cached
 * for a while.
 */
export class AttachmentReader {
  readonly #storage: Pick<ObjectStore, 'read'>;
  readonly #documents: Pick<DocumentReaders, 'read'>;
  readonly #cache = new ByteCache<FileView>(cacheBytes);

  constructor(storage: Pick<ObjectStore, 'read'>, documents: Pick<DocumentReaders, 'read'>) {
    this.#storage = storage;
    this.#documents = documents;
  }

  /** A file of the object store. */
  stored(content: { objectKey: string; contentType: string; size: number }): FileSource {
    const { objectKey: key, contentType, size } = content;
    return { key, contentType, size, read: async (range) => buffer(await this.#storage.read(key, range)) };
  }

  /** Images and PDFs for a model that can see them; otherwise a file's text, if it has any. */
  async view(
    source: FileSource,
    options: { spaceId: string; model: Pick<ModelCapabilities, 'images' | 'pdf'>; maxImageBytes?: number | undefined },
  ): Promise<FileView> {
    const { spaceId, model, maxImageBytes: most = maxImageBytes } = options;
    const asSeen = canSee(source, model, most);
    const key = `${asSeen ? 'seen' : `text, ${most}`} ${source.key}`;
    const known = this.#cache.get(key);
    if (known !== undefined) return known;
    try {
      const view = await (asSeen ? see(source) : this.#readAsText(source, spaceId, most));
      this.#cache.set(key, view, bytesOf(key, view));
      return view;
    } catch (error) {
      if (error instanceof DomainError && error.code === 'CONTENT_MISSING') return absent('the file no longer exists');
      if (error instanceof DomainError && error.code === 'CONTENT_DAMAGED') return absent('the file is damaged');
      // The store is unreachable, or too many documents are being read. Anything but a DomainError makes Temporal retry
      // the activity, so the model does not answer as if there were no file.
      throw error instanceof DomainError ? new Error('An attached file could not be read.', { cause: error }) : error;
    }
  }

  async #readAsText({ contentType, size, read }: FileSource, spaceId: string, most: number): Promise<FileView> {
    if (size === 0) return { kind: 'text', text: '', hasMore: false };
    if (isImageType(contentType)) {
      return absent(size > most ? 'the image is too large' : 'this model cannot see images');
    }
    if (isPdfType(contentType)) {
      if (size > maxReadPdfBytes) return absent('the PDF is too large');
      return viewOfPdf(await this.#documents.read('pdf', await read(), { spaceId }));
    }
    const bytes = await read(size > maxTextBytes ? { start: 0, end: maxTextBytes - 1 } : undefined);
    if (!isText(bytes)) return absent('the file is not text');
    return { kind: 'text', text: new TextDecoder().decode(bytes, { stream: true }), hasMore: size > bytes.length };
  }
}

function canSee(
  { contentType, size }: FileSource,
  model: Pick<ModelCapabilities, 'images' | 'pdf'>,
  most: number,
): boolean {
  if (isImageType(contentType)) return model.images && size <= most;
  return isPdfType(contentType) && model.pdf && size <= maxSeenPdfBytes;
}

async function see({ contentType, read }: FileSource): Promise<FileView> {
  const bytes = await read();
  if (isImageType(contentType)) {
    // A provider refuses the whole request over one bad picture: every later turn of the thread would fail.
    const size = imageSize(bytes);
    if (size === undefined) return absent('the image cannot be read');
    const { width, height } = size;
    if (Math.max(width, height) > maxImageSide) return absent(`the image is too large (${width} × ${height} pixels)`);
  }
  return { kind: 'seen', mediaType: contentType, base64: bytes.toString('base64') };
}

function viewOfPdf(reading: Reading<'pdf'>): FileView {
  if (reading.kind === 'broken') return absent('the PDF cannot be read');
  if (reading.kind === 'costly') return absent('reading the PDF takes too much time or memory');
  const { pages, pageCount, isCut } = reading.value;
  if (pages.every((page) => page === '')) return absent('the PDF has no text in it, only pictures');
  const text = pages.map((page, index) => `[page ${index + 1}]\n${page}`).join('\n\n');
  return { kind: 'text', text, pageCount, hasMore: isCut };
}

function absent(why: string): FileView {
  return { kind: 'absent', why };
}

/** The approximate size of a view in the cache. Even an absent file takes a few bytes. */
function bytesOf(key: string, view: FileView): number {
  return key.length + (view.kind === 'seen' ? view.base64 : view.kind === 'text' ? view.text : view.why).length;
}

/** A least-recently-used cache, limited by its total bytes. */
class ByteCache<V> {
  readonly #maxBytes: number;
  readonly #kept = new Map<string, { value: V; bytes: number }>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get(key: string): V | undefined {
    const found = this.#kept.get(key);
    if (found === undefined) return undefined;
    // Moves it to the end: a map keeps insertion order.
    this.#kept.delete(key);
    this.#kept.set(key, found);
    return found.value;
  }

  set(key: string, value: V, bytes: number): void {
    if (bytes > this.#maxBytes) return;
    this.#bytes += bytes - (this.#kept.get(key)?.bytes ?? 0);
    this.#kept.delete(key);
    this.#kept.set(key, { value, bytes });
    for (const [oldest, { bytes: freed }] of this.#kept) {
      if (this.#bytes <= this.#maxBytes) return;
      this.#kept.delete(oldest);
      this.#bytes -= freed;
    }
  }
}
