import { type DeliveredRow, readableDelivered } from './list-delivered.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

/** Reads the newest delivery of an id: a message that was published anew under its old one has several. No row: there is none. */
export function getDelivered(names: Names, id: string): Statement<DeliveredRow, string> {
  return {
    name: 'get_delivered',
    text: `
select ${readableDelivered}
  from ${names.delivered} as d
 where d.id = $1::uuid
 order by d.delivered_at desc, d.delivered_seq desc
 limit 1`,
    values: [id],
    input: id,
  }
}
