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
    item     text not null,
    address  text not null
  );

  create table coupons (
    code     text primary key,
    order_id integer not null references orders
  );

  create table invoices (
    order_id     integer primary key references orders,
    paid_in_time boolean          -- null: not paid
  );

  -- Written by the clerk, for each dead letter that he replays.
  create table corrections (
    order_id   integer primary key references orders,
    address    text not null,
    message_id uuid not null
  );

  -- Written by the subscribers. The primary key is the message's id: a second delivery of it changes nothing.
  create table shipments (
    message_id uuid primary key,
    order_id   integer not null,
    item       text not null,
    address    text not null,
    attempt    integer not null
  );

  create table emails_sent (
    message_id  uuid primary key,
    order_id    integer not null,
    recipient   text not null,
    about       text not null,
    coupon_code text
  );

  -- Written by the carrier, for each parcel that it did not take.
  create table refusals (
    message_id uuid not null,
    attempt    integer not null,
    primary key (message_id, attempt)
  );

  -- Written by the carrier, for each parcel that the storm kept from the island.
  create table stormbound (
    message_id uuid not null,
    order_id   integer not null,
    attempt    integer not null,
    primary key (message_id, attempt)
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
