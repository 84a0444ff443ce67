import { openBullMq } from './bullmq.ts'
import type { Contender } from './catalogue.ts'
import type { Driver, DriverInput } from './driver.ts'
import { openFloor } from './floor.ts'
import { openGraphileWorker } from './graphile-worker.ts'
import { openPgBoss } from './pg-boss.ts'
import { openPgTransactionalOutbox } from './pg-transactional-outbox.ts'
import { openPostbox } from './postbox.ts'
import type { Casting } from './protocol.ts'

/** Each loads its package when it is opened, so that a process holds one contender and no other. */
const openers: Readonly<Record<Contender['driver'], (input: DriverInput) => Driver>> = {
  postbox: openPostbox,
  'graphile-worker': openGraphileWorker,
  'pg-boss': openPgBoss,
  bullmq: openBullMq,
  'pg-transactional-outbox': openPgTransactionalOutbox,
  floor: openFloor,
}

export function openDriver({ driver, settings, url }: Casting): Driver {
  return openers[driver]({ url, settings })
}
