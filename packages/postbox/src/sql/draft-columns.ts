// A batch as columns: what each message has of one kind travels as one text, and only the kinds that some message has.
import type { Draft } from '../core/message.ts'
import { dueOf } from './draft-rows.ts'

/** What some drafts have and others may not: a member of `drafts`, and how its text is made and read. */
interface Column {
  readonly member: Optional
  readonly of: (draft: Draft) => unknown
  readonly pack: (cells: readonly unknown[]) => string
  /** SQL: the function that gives a row for each draft, of the parameter. */
  readonly rows: (parameter: string) => string
  /** SQL: the value, of what the function gives. */
  readonly value: string
}

type Optional = 'key' | 'timer' | 'headers' | 'delay' | 'epoch' | 'generation'

export interface DraftColumns {
  readonly has: ReadonlySet<Optional>
  /** SQL: a `select` that gives the drafts, with the members that there are, `first` and `size` of their bodies (see `bytesOf`), and `place`. */
  readonly select: string
  readonly values: readonly string[]
}

/** `from`: the number of the first parameter. */
export function columnsOf(drafts: readonly Draft[], from: number): DraftColumns {
  const given: Column[] = []
  const texts: string[] = []
  for (const column of optional) {
    const cells = drafts.map(column.of)
    if (cells.every((cell) => cell === null)) continue
    given.push(column)
    texts.push(column.pack(cells))
  }
  const { firsts, sizes } = cutsOf(drafts)
  const rows = [listed, listed, listed, ...given.map((column) => column.rows)]
  const members = ['id', 'first', 'size', ...given.map(({ member }) => member)]
  const values = ['d.id::uuid', 'd.first::int', 'd.size::int', ...given.map(({ value }) => value)]
  return {
    has: new Set(given.map(({ member }) => member)),
    select: `
  select ${values.map((value, index) => `${value} as ${members[index]}`).join(', ')}, place
    from rows from (
           ${rows.map((row, index) => row(`$${from + index}::text`)).join(',\n           ')}
         ) with ordinality
      as d(${members.join(', ')}, place)`,
    values: [drafts.map(({ id }) => id).join(), firsts.join(), sizes.join(), ...texts],
  }
}

/** The bodies of all drafts, one behind the other. */
export function bytesOf(drafts: readonly Draft[]): Uint8Array {
  return Buffer.concat(drafts.map(({ body }) => body))
}

/** Where each begins in there, counted from 1, and how long it is. */
function cutsOf(drafts: readonly Draft[]): { readonly firsts: number[]; readonly sizes: number[] } {
  const firsts: number[] = []
  const sizes: number[] = []
  let first = 1
  for (const { body } of drafts) {
    firsts.push(first)
    sizes.push(body.byteLength)
    first += body.byteLength
  }
  return { firsts, sizes }
}

/** Words without commas, all of them there. Split and cast so, a message takes the server 0.7 µs less than in array literals, and 0.9 less than in JSON. */
const listed: Column['rows'] = (parameter) => `string_to_table(${parameter}, ',')`

/** Numbers; nothing between two commas is null. */
function numeric(member: Optional, type: string, of: Column['of']): Column {
  return {
    member,
    of,
    pack: (cells) => cells.join(),
    rows: (parameter) => `string_to_table(${parameter}, ',', '')`,
    value: `d.${member}::${type}`,
  }
}

function textual(member: Optional, of: Column['of']): Column {
  return {
    member,
    of,
    pack: JSON.stringify,
    rows: (parameter) => `jsonb_array_elements_text(${parameter}::jsonb)`,
    value: `d.${member}`,
  }
}

const optional: readonly Column[] = [
  textual('key', ({ key }) => key),
  textual('timer', ({ timerId }) => timerId),
  {
    ...textual('headers', ({ headers }) => headers),
    rows: (parameter) => `jsonb_array_elements(${parameter}::jsonb)`,
    value: `nullif(d.headers, 'null')`,
  },
  numeric('delay', 'float8', ({ schedule }) => dueOf(schedule).delayMs),
  numeric('epoch', 'float8', ({ schedule }) => dueOf(schedule).epochMs),
  numeric('generation', 'bigint', ({ generation }) => generation),
]
