export const goodAddress = '12 Harbour Street'

/** Only the ferry goes there, and not in a storm. */
export const islandAddress = '1 Lighthouse Rock'

/** A typing error of a customer. No parcel can be brought there, however often it is tried. */
export const wrongAddress = '0 Nowhere Lane'
