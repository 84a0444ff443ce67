/**
 * The shop's own tables, beside those that `outbox.migrate()` makes.
 *
 * Deliveries have no foreign key to `orders`, though a real shop might want one. If a message of a rolled-back order
 * were ever delivered, the key would refuse the row and hide the mistake; here the verdict has to see it.
 */
export const createTables = `
  create table orders (
    id       integer generated always as identity primary key,
    customer text not null,
    item     text not null
  );

  create table coupons (
    code     text primary key,
    order_id integer not null references orders
  );

  -- Written by the subscribers. The primary key is the message's id: a second delivery of it changes nothing.
  create table shipments (
    message_id uuid primary key,
    order_id   integer not null,
    item       text not null
  );

  create table emails_sent (
    message_id  uuid primary key,
    order_id    integer not null,
    recipient   text not null,
    coupon_code text              -- null: the confirmation of the order
  );

  -- What was rolled back. Nothing of a rolled-back transaction remains to be counted, so the customers note it on
  -- another connection, which commits by itself.
  create table declined (
    order_id integer primary key
  );

  create table withdrawn_coupons (
    code text primary key
  );
`
