export const goodAddress = '12 Harbour Street'

/** A typing error of a customer. No parcel can be brought there, however often it is tried. */
export const wrongAddress = '0 Nowhere Lane'
