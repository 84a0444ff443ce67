// Publishers of any build, workers of any build, and whether the deliveries add up to what was committed.
import { expect } from 'vitest'
import type { Child } from '../chaos/processes.ts'
import type { Random } from '../chaos/random.ts'
import type { TestDatabase } from '../support/database.ts'
import { eventually } from '../support/signals.ts'

export interface Traffic {
  /** Random transactions of each publisher, one after the other, until the work is done. */
  publishDuring(work: Promise<unknown>, publishers: readonly Child[]): Promise<void>
  /** One message, unless it met a timer that waits. */
  note(receipt: { readonly id: string } | null): void
  /** Resolves when no row is left. */
  untilEmpty(): Promise<void>
  /** Every message that was committed was handled to its end, once; no other was; nothing is left. */
  assertDelivered(): Promise<void>
}

/**
 * Where workers of chaos/ record what they deliver. A quarter of the messages is refused at first: their handlers fail, whoever runs them,
 * with an error that may pass.
 */
export async function createFussyDeliveredTable({ query }: TestDatabase): Promise<void> {
  await query('create table delivered (id uuid not null, worker int not null, deliveries int not null)')
  await query(`
    create function refuse_at_first() returns trigger language plpgsql as $$
    begin
      if new.deliveries = 1 and get_byte(uuid_send(new.id), 15) < 64 then
        raise exception 'not at first' using errcode = '40001';
      end if;
      return new;
    end
    $$`)
  await query(
    'create trigger refuse_at_first before insert on delivered for each row execute function refuse_at_first()',
  )
}

export function createTraffic({ query }: TestDatabase, random: Random): Traffic {
  const committed = new Set<string>()
  const round = async (publisher: Child): Promise<void> => {
    const seed = random.below(2 ** 32)
    publisher.tell({ kind: 'publish', seed })
    const published = await publisher.until('published', (report) => report.seed === seed)
    for (const id of published.committed) committed.add(id)
  }
  return {
    async publishDuring(work, publishers) {
      let isOver = false
      const over = (): void => {
        isOver = true
      }
      work.then(over, over)
      await Promise.all(
        publishers.map(async (publisher) => {
          while (!isOver) await round(publisher)
        }),
      )
      await work
    },
    note(receipt) {
      if (receipt !== null) committed.add(receipt.id)
    },
    async untilEmpty() {
      await eventually(async () => (await query('select from outbox limit 1')).length === 0, {
        what: 'every message to be delivered',
      })
    },
    async assertDelivered() {
      const delivered = await query<{ id: string }>('select id::text as id from delivered')
      expect(delivered.map(({ id }) => id).sort()).toEqual([...committed].sort())
      expect(await query('select id from outbox')).toEqual([])
      expect(await query('select id from outbox_dead')).toEqual([])
    },
  }
}
