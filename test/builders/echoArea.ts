import type { Area } from '../../api/frame/area.ts';
import { callerOf } from '../../api/frame/auth/caller.ts';
import type { Connection } from '../../api/frame/connection.ts';
import { notFound } from '../../base/errors.ts';

/** An area only for tests: one WebSocket, for editors, which echoes messages. No served document describes it. */
export const echoContract = `
paths:
  /api/spaces/{spaceId}/echo/{name}:
    parameters:
      - $ref: "#/components/parameters/SpaceId"
      - { name: name, in: path, required: true, schema: { type: string, maxLength: 20 } }
    get:
      operationId: openEcho
      tags: [Spaces]
      summary: Open an echo
      x-scope: chat
      x-upgrade: websocket
      parameters:
        - { name: times, in: query, required: true, schema: { type: integer, minimum: 1, maximum: 9 } }
      responses:
        "101": { description: It is open. }
        "400": { $ref: "#/components/responses/BadRequest" }
        "401": { $ref: "#/components/responses/Unauthorized" }
        "403": { $ref: "#/components/responses/Forbidden" }
        "404": { $ref: "#/components/responses/NotFound" }
        "426": { $ref: "#/components/responses/UpgradeRequired" }
        "429": { $ref: "#/components/responses/TooManyRequests" }
        "500": { $ref: "#/components/responses/InternalError" }
        "503": { $ref: "#/components/responses/Unavailable" }
`;

export interface EchoArea {
  area: Area;
  /** The opened connections, in order. */
  opened: { connection: Connection; userId: string; times: number }[];
}

export function echoArea(): EchoArea {
  const opened: EchoArea['opened'] = [];
  const area: Area = {
    access: { openEcho: 'editor' },
    routes: [],
    upgrades: {
      openEcho: () => (req) => {
        if (req.pathParams?.name === 'absent') throw notFound('echo');
        const times = Number(req.query.times);
        const { userId } = callerOf(req);
        return {
          open(connection) {
            opened.push({ connection, userId, times });
            connection.onMessage((data, isBinary) => {
              if (data.toString() === 'fail') throw new Error('told to');
              connection.send(isBinary ? data : data.toString().repeat(times));
            });
          },
        };
      },
    },
  };
  return { area, opened };
}
