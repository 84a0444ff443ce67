/** Any object, whatever it does when touched: read its members with `member`. */
export type Layer = Readonly<Record<string, unknown>>

// Where clients and ORMs keep what they wrapped: the language and Drizzle (`cause`), TypeORM (`driverError`), Prisma's adapters
// (`driverAdapterError`), Sequelize (`original`, `parent`), Slonik and GraphQL (`originalError`), Objection (`nativeError`).
const wrappings = [
  'cause',
  'driverError',
  'driverAdapterError',
  'original',
  'parent',
  'originalError',
  'nativeError',
] as const

const deepest = 10
const most = 100

/**
 * An error and what is wrapped in it, breadth first: what lies nearer to the surface comes first. Bounded, cycles included. The members of
 * an AggregateError are left out: several failures have no one cause, and one that may pass makes it worth another try.
 */
export function layersOf(error: unknown): readonly Layer[] {
  if (!isLayer(error)) return []
  const depths = new Map<Layer, number>([[error, 0]])
  // A Map that grows is walked to its end, in the order of growth.
  for (const [layer, depth] of depths) {
    if (depth === deepest - 1) break
    for (const inner of wrappedIn(layer)) {
      if (isLayer(inner) && !depths.has(inner) && depths.size < most) depths.set(inner, depth + 1)
    }
  }
  return [...depths.keys()]
}

/** A member, or undefined where reading it throws. */
export function member(layer: Layer, name: string): unknown {
  try {
    return layer[name]
  } catch {
    return undefined
  }
}

/** An error of Prisma: by its version, or by a code of its kind with `meta` beside it. */
export function isPrismaError(layer: Layer): boolean {
  if (typeof member(layer, 'clientVersion') === 'string') return true
  const code = member(layer, 'code')
  return typeof code === 'string' && /^P[1-9][0-9]{3}$/.test(code) && isLayer(member(layer, 'meta'))
}

function wrappedIn(layer: Layer): readonly unknown[] {
  const inner = wrappings.map((name) => member(layer, name))
  // Only there: `meta` of other errors holds data, and data may look like a state.
  return isPrismaError(layer) ? [...inner, member(layer, 'meta')] : inner
}

function isLayer(value: unknown): value is Layer {
  return typeof value === 'object' && value !== null
}
