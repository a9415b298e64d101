import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';

export const spaceIdKey = defineSearchAttributeKey('SpaceId', SearchAttributeType.KEYWORD);
export const threadIdKey = defineSearchAttributeKey('ThreadId', SearchAttributeType.KEYWORD);
export const userIdKey = defineSearchAttributeKey('UserId', SearchAttributeType.KEYWORD);
export const kindKey = defineSearchAttributeKey('Kind', SearchAttributeType.KEYWORD);
