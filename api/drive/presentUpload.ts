import type { DriveUpload } from '../../models/drive/driveUpload.ts';
import { joinPath } from '../../models/drive/names.ts';
import { time } from '../frame/times.ts';

/** An upload under way, with the parts that are still to be sent. */
export function presentUpload(upload: DriveUpload, parts: { partNumber: number; size: number; url: string }[]) {
  return {
    id: upload.id,
    containerId: upload.target.containerId,
    path: joinPath(upload.target.names),
    size: upload.size,
    partSize: upload.partSize,
    parts,
    itemId: upload.itemId,
    createdAt: time(upload.createdAt),
    expiresAt: time(upload.expiresAt),
  };
}
