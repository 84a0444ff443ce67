// biome-ignore-all lint/suspicious/noExplicitAny: shapes of other people's clients, of which only one member's type matters
import type { PooledDatabase } from './transaction-like.ts'

/**
 * The transaction of a client or an ORM, as its own users know it: what `tx` is in `context.transaction`. A pg.Pool's client, the `sql` of
 * postgres.js' `begin`, what a `transaction` of PGlite, Drizzle, Kysely or an own database gives to its callback. `unknown` where types do not tell.
 */
export type TransactionOf<D> = 0 extends 1 & D
  ? unknown
  : D extends PooledDatabase
    ? OpenedBy<D['pool']>
    : OpenedBy<D>

/** The order of the arms matters: a callback that is not taken would be inferred as `unknown`. */
type OpenedBy<D> = D extends { readonly totalCount: number; connect: infer Connect }
  ? Connected<Connect>
  : D extends { begin(options: any, work: (tx: infer Tx) => any): any }
    ? Tx
    : D extends { transaction(): { execute(work: (tx: infer Tx) => any): any } }
      ? Tx
      : D extends { transaction(work: (tx: infer Tx) => any, options?: any): any }
        ? Tx
        : unknown

/** Of pg's two overloads of `connect` the last one, with a callback, would be looked at alone. */
type Connected<Connect> = 0 extends 1 & Connect
  ? unknown
  : Connect extends { (): Promise<infer Client>; (callback: any): any }
    ? unknown extends Client
      ? Connect extends () => Promise<infer Only>
        ? Only
        : unknown
      : Client
    : unknown
