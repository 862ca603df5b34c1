// What can go wrong, in words for the person in front of the screen.

/** The release is not what it should be. */
export class Damaged extends Error {}

/** A file could not be fetched. */
export class Unreachable extends Error {}

/** A file of ratings cannot be used. */
export class Unusable extends Error {}
