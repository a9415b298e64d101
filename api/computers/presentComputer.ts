import type { Config } from '../../config/index.ts';
import { type Computer, limitsOf } from '../../models/computers/computer.ts';
import type { AnswerOf } from '../frame/answer.ts';
import { time } from '../frame/times.ts';

export function presentComputer(computer: Computer, config: Pick<Config, 'computers'>): AnswerOf<'getComputer'> {
  const { id, spaceId, name, defaultOf, status, errorCode, errorDetail, envNames, generation } = computer;
  const { cpuMilli, ...limits } = limitsOf(computer, config);
  return {
    id,
    spaceId,
    name,
    isDefault: defaultOf !== null,
    status,
    error: errorCode === null ? null : { code: errorCode, detail: errorDetail ?? '' },
    cpu: cpuMilli / 1_000,
    ...limits,
    envNames,
    generation,
    forkedFrom: computer.forkedFrom,
    createdBy: computer.createdBy,
    createdAt: time(computer.createdAt),
    startedAt: computer.startedAt === null ? null : time(computer.startedAt),
    statusAt: time(computer.statusAt),
  };
}
