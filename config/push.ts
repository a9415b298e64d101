import { z } from 'zod';

export const pushSettings = z.object({
  ATRIUM_PUSH_CONTACT: z
    .union([z.email(), z.url({ protocol: /^https$/ })], 'an e-mail address, or an address like https://host')
    .optional(),
});

/** Apple's service refuses a push whose contact is not an https or mailto address. */
function pushSubject(contact: string | undefined, publicUrl: string): string {
  if (contact?.startsWith('https:')) return contact;
  if (contact !== undefined) return `mailto:${contact}`;
  return publicUrl.startsWith('https:') ? publicUrl : 'mailto:nobody@localhost';
}

/** Web push. */
export function pushConfig(env: z.infer<typeof pushSettings>, publicUrl: string) {
  return Object.freeze({
    /** The contact for push services (RFC 8292 §2.1). */
    subject: pushSubject(env.ATRIUM_PUSH_CONTACT, publicUrl),
  });
}
