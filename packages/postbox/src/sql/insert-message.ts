import type { Draft } from '../core/message.ts'
import { type Inserted, type InsertedRow, type InsertOptions, insertPlain } from './insert-plain.ts'
import type { Names } from './names.ts'
import { onConflict } from './on-conflict.ts'
import type { Statement } from './statement.ts'

/** Inserts one message, which may be a timer. Returns the row written; none when a waiting timer was kept. */
export function insertMessage(
  names: Names,
  draft: Draft,
  options: InsertOptions,
): Statement<InsertedRow, Inserted> {
  return insertPlain(names, draft, { ...options, onConflict: onConflict(draft.conflict) })
}
