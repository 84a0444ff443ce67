// Sequences by chance, on the model and on stores: what they come to has to be the same.
import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import type { StorageModes } from '../../packages/postbox/src/core/storage-modes.ts'
import { memoryStore, type Store, type StoreKind } from '../support/stores.ts'
import type { Command } from './command.ts'
import { type Expected, follow } from './sequence.ts'
import { sequences } from './sequences.ts'
import { effects, effectsOf } from './tally.ts'

export interface CheckOptions {
  /** How many. */
  readonly sequences: number
  /** It ends earlier when this is over; null: it does not. */
  readonly withinMs: number | null
  /** The test file, from the root: said in the command that repeats a failure. */
  readonly file: string
  readonly project: string
}

export interface Checked {
  readonly seed: number
  readonly sequences: number
  /** How often each step was taken, and each effect was seen. */
  readonly counts: ReadonlyMap<string, number>
  /** One sequence alone was repeated. */
  readonly isRepeated: boolean
}

const byDefault: StorageModes = { deadLetters: 'table', delivered: 'delete' }

/** Gives `check`; to be called where a describe may register what the stores need. */
export function useModel(
  kinds: readonly StoreKind[],
  { deadLetters, delivered }: StorageModes = byDefault,
): (options: CheckOptions) => Promise<Checked> {
  const stores = kinds.map((kind) => ({
    empty: emptied(kind),
    following: { name: kind.name, delivered, looksEverywhere: kind === memoryStore },
  }))
  return async (options) => {
    const counts = new Map<string, number>()
    const followAll = async (given: readonly Command[]): Promise<void> => {
      const commands = deadLetters === 'in-place' ? given.map(inPlace) : given
      let taken: readonly Expected[] = []
      for (const { following, empty } of stores)
        taken = await follow({ ...following, store: await empty() }, commands)
      // Of the last store: the others have as good as the same.
      count(counts, taken)
    }
    let running: Promise<void> = Promise.resolve()
    const property = fc.asyncProperty(sequences, (given) => {
      running = followAll(given)
      return running
    })
    const { seed, path } = repeated()
    const details = await fc.check(property, {
      seed,
      ...(path === undefined ? {} : { path }),
      numRuns: options.sequences,
      ...(options.withinMs === null ? {} : { interruptAfterTimeLimit: options.withinMs }),
    })
    // One that time has run out for goes on, and nobody awaits it.
    await running.catch(() => {})
    // Whatever happened: a lease that is left in a table counts as a leak.
    for (const { empty } of stores) await empty()
    if (details.failed) throw failure(details, options)
    return { seed, sequences: details.numRuns, counts, isRepeated: path !== undefined }
  }
}

/** Whoever keeps dead letters where they lie moves none. */
function inPlace(command: Command): Command {
  if (command.kind !== 'settle' || command.write.kind !== 'bury') return command
  return { ...command, write: { ...command.write, kind: 'quarantine' } }
}

/** What POSTBOX_MODEL_SEED and POSTBOX_MODEL_PATH say; else a seed of its own for each run. */
function repeated(): { readonly seed: number; readonly path: string | undefined } {
  const { POSTBOX_MODEL_SEED: seed, POSTBOX_MODEL_PATH: path } = process.env
  return { seed: seed ? Number(seed) : randomInt(2 ** 31), path: path || undefined }
}

/** Rows are deleted: a truncate makes new files for the tables and their indexes, and takes longer than a sequence. */
function emptied(kind: StoreKind): () => Promise<Store> {
  const open = kind.use()
  if (kind === memoryStore) return open
  let opened: Promise<Store> | undefined
  return async () => {
    opened ??= open()
    const store = await opened
    const { messages, dead, delivered, operations, queues } = store.names
    const others = [dead, delivered, operations, queues].map(
      (name, nth) => `t${nth} as (delete from ${name})`,
    )
    const text = `with ${others.join(', ')} delete from ${messages}`
    await store.database.run({ name: 'empty', text, values: [] })
    return store
  }
}

function count(counts: Map<string, number>, expected: readonly Expected[]): void {
  for (const one of expected)
    for (const name of [one.step.kind, ...effectsOf(one)]) counts.set(name, (counts.get(name) ?? 0) + 1)
}

function failure(details: fc.RunDetails<[readonly Command[]]>, options: CheckOptions): Error {
  const { seed, counterexamplePath, errorInstance } = details
  const cause = errorInstance instanceof Error ? errorInstance : new Error(String(errorInstance))
  const repeat = `POSTBOX_MODEL_SEED=${seed} POSTBOX_MODEL_PATH=${counterexamplePath} npx vitest run --config tests/vitest.config.ts --project ${options.project} ${options.file}`
  return new Error(`${cause.message}\n\nOnce more: ${repeat}\n`, { cause })
}

/** One line: what was done, and how to do it again. */
export function lineOf({ seed, sequences, counts }: Checked): string {
  const isEffect = (name: string): boolean => effects.some((effect) => effect === name)
  const kinds = [...counts.keys()].filter((name) => !isEffect(name))
  const told = [...kinds, ...effects].map((name) => `${name} ${counts.get(name) ?? 0}`)
  return `model: seed ${seed}, ${sequences} sequences: ${told.join(', ')}`
}

/** Effects that were seen less often than this; those aside that cannot be seen. */
export function rareEffects(
  { counts }: Checked,
  least: number,
  unseen: readonly string[] = [],
): readonly string[] {
  return effects.filter((effect) => (counts.get(effect) ?? 0) < least && !unseen.includes(effect))
}
