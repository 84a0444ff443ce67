import type { Statement } from '../sql/statement.ts'
import type { Executor } from './executor.ts'
import { rowsExecutor } from './executors.ts'

/** A client of pg: a statement that has a name is parsed when the connection first meets it. */
export interface NamingClient {
  query(
    text: string | (Named & { readonly values: unknown[] }),
    values?: unknown[],
  ): Promise<{ readonly rows: readonly unknown[]; readonly command?: string }>
}

interface Named {
  readonly name: string
  readonly text: string
}

/** So many on one connection, each a tenth to a third of a megabyte of its backend. An outbox has ten at most. */
const mostKept = 16
const mostFailures = 2
const deepest = 5

/** By connection, not by session: what is given back keeps its statements, and who gets it next finds them. They are right for him, too: the name says which text it is. */
const keptOn = new WeakMap<object, Map<string, Named>>()

/** Poolers that cannot do with names. */
const unnamed = new WeakSet<object>()

/**
 * Runs what has a `keptText` by name, all else without. Nothing is kept where every plan would be made without the values: the one for an empty table
 * would be used on a full one. A name may be refused (a pooler leads to another server process, or somebody has discarded it): before anything was
 * done, so the statement is sent once more, without, as are all others of the session from then on. So are they when two in a row have failed for whatever
 * reason: some poolers refuse names in words of their own, and would for ever.
 */
export function keepingExecutor(client: NamingClient, pool: object): Executor {
  const plain = rowsExecutor(client)
  let mayName: boolean | null = unnamed.has(pool) ? false : null
  let failures = 0
  return {
    async run<Row>(statement: Statement<Row>) {
      const { keptText } = statement
      if (keptText === undefined || mayName === false) return plain.run(statement)
      mayName ??= await plansWithValues(plain)
      const named = mayName ? namedOn(client, statement.name, keptText) : null
      if (named === null) return plain.run(statement)
      try {
        const { rows } = await client.query({ ...named, values: [...statement.values] })
        failures = 0
        return rows as readonly Row[]
      } catch (error) {
        const code = codeOf(error)
        failures += 1
        if (failures === mostFailures) mayName = false
        // Of a pooler's own: nobody can tell whether the statement was carried out. The lane makes a new connection, which must not meet the same again.
        if (code === '08P01') unnamed.add(pool)
        if (!isOfItsName(code)) throw error
        mayName = false
        return plain.run(statement)
      }
    },
  }
}

/** Of the error, or of what it was made of: some pools wrap it. */
function codeOf(error: unknown): unknown {
  let layer = error
  for (let depth = 0; depth < deepest && typeof layer === 'object' && layer !== null; depth++) {
    const { code, cause } = layer as { readonly code?: unknown; readonly cause?: unknown }
    if (code !== undefined) return code
    layer = cause
  }
  return undefined
}

/** It does not exist, it exists already, or it gives other columns than when it was parsed. */
function isOfItsName(code: unknown): boolean {
  return code === '26000' || code === '42P05' || code === '0A000'
}

const readPlanning: Statement<{ readonly mode: string | null }> = {
  name: 'read_planning',
  text: `select current_setting('plan_cache_mode', true) as mode`,
  values: [],
}

async function plansWithValues(executor: Executor): Promise<boolean> {
  const [row] = await executor.run(readPlanning)
  return row?.mode === 'auto' || row?.mode === 'force_custom_plan'
}

/** Null: enough are kept. */
function namedOn(client: object, statement: string, text: string): Named | null {
  const kept = keptOn.get(client) ?? new Map<string, Named>()
  keptOn.set(client, kept)
  const known = kept.get(text)
  if (known !== undefined || kept.size >= mostKept) return known ?? null
  const named = { name: `postbox_${statement}_${hashOf(text)}`, text }
  kept.set(text, named)
  return named
}

/** 64 bits, so that no two texts have one name: behind a pooler a name may be met on a connection where another process has given it. */
function hashOf(text: string): string {
  let [high, low] = [0xdeadbeef, 0x41c6ce57]
  for (let place = 0; place < text.length; place++) {
    const unit = text.charCodeAt(place)
    high = Math.imul(high ^ unit, 2_654_435_761)
    low = Math.imul(low ^ unit, 1_597_334_677)
  }
  return [mixed(high, low), mixed(low, high)].map((half) => half.toString(16).padStart(8, '0')).join('')
}

function mixed(half: number, other: number): number {
  return (
    (Math.imul(half ^ (half >>> 16), 2_246_822_507) ^ Math.imul(other ^ (other >>> 13), 3_266_489_909)) >>> 0
  )
}
