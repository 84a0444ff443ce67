import { islandAddress, wrongAddress } from './addresses.ts'
import type { Shop } from './shop.ts'

export interface Parcel {
  readonly messageId: string
  readonly orderId: number
  readonly address: string
  readonly attempt: number
}

class CarrierDown extends Error {
  override readonly name = 'CarrierDown'
}

/** What is stored of a dead letter's error begins with its name: it can be searched for. */
export class NoFerry extends Error {
  override readonly name = 'NoFerry'
}

/**
 * Somebody else's service, and as reliable: one parcel in ten is not taken at the first attempt, and none for the island
 * as long as there is a storm, however often it is tried.
 */
export async function handOver({ pool, weather }: Shop, parcel: Parcel): Promise<void> {
  const { messageId, orderId, address, attempt } = parcel
  if (address === islandAddress && weather.isStormy) {
    const insert =
      'insert into stormbound (message_id, order_id, attempt) values ($1, $2, $3) on conflict do nothing'
    await pool.query(insert, [messageId, orderId, attempt])
    throw new NoFerry('no ferry sails in this storm')
  }
  const isDown = attempt === 1 && orderId % 10 === 7
  if (!isDown) return
  const insert = 'insert into refusals (message_id, attempt) values ($1, $2) on conflict do nothing'
  await pool.query(insert, [messageId, attempt])
  throw new CarrierDown('the carrier does not answer')
}

export function isKnown(address: string): boolean {
  return address !== wrongAddress
}
