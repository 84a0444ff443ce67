/** What a delivery came to. A handler's failure is a value; only a broken database is an exception. */
export type Outcome = { readonly kind: 'ack' } | { readonly kind: 'fail'; readonly error: unknown }
