import type pg from 'pg'
import { wrongAddress } from './addresses.ts'

export interface Parcel {
  readonly messageId: string
  readonly orderId: number
  readonly attempt: number
}

class CarrierDown extends Error {
  override readonly name = 'CarrierDown'
}

/** Somebody else's service, and as reliable: one parcel in ten is not taken at the first attempt. */
export async function handOver(pool: pg.Pool, { messageId, orderId, attempt }: Parcel): Promise<void> {
  const isDown = attempt === 1 && orderId % 10 === 7
  if (!isDown) return
  const insert = 'insert into refusals (message_id, attempt) values ($1, $2) on conflict do nothing'
  await pool.query(insert, [messageId, attempt])
  throw new CarrierDown('the carrier does not answer')
}

export function isKnown(address: string): boolean {
  return address !== wrongAddress
}
