import { isPrismaError, type Layer, layersOf, member } from './error-layers.ts'

// How Prisma's engine prints a state. Nothing looser: its messages quote the query, which may hold `code: "AB123"`.
const printed = /(?:Raw query failed\. Code: `|PostgresError \{ code: "|SqlState\(E)([0-9A-Z]{5})[`")]/

// What Prisma's own codes for bad data stand for.
const stateByCode: Readonly<Record<string, string>> = {
  P2000: '22001',
  P2002: '23505',
  P2003: '23503',
  P2004: '23514',
  P2007: '22P02',
  P2011: '23502',
  P2020: '22003',
}

/** The state of an error that Prisma's engine gave without one: as its text says, or as its own code means. Ask `sqlStateOf` first. */
export function prismaStateOf(error: unknown): string | null {
  const states = layersOf(error).filter(isPrismaError).map(stateOf)
  return states.find((state) => state !== undefined) ?? null
}

function stateOf(layer: Layer): string | undefined {
  const message = member(layer, 'message')
  const code = member(layer, 'code')
  const state = typeof message === 'string' ? printed.exec(message)?.[1] : undefined
  if (state !== undefined) return state
  return typeof code === 'string' && Object.hasOwn(stateByCode, code) ? stateByCode[code] : undefined
}
