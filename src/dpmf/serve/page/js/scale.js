// The rating scale of a release: which ratings can be given, and how numbers on it are written.

const MOST_BUTTONS = 11;

/** Return the scale with the control that suits it: "have" (implicit), "stars", "buttons" or "slider". */
export function makeScale({ lo, hi }, implicit) {
  const step = [1, 0.5].find((size) => Number.isInteger(lo / size) && Number.isInteger(hi / size)) ?? (hi - lo) / 20;
  const count = Math.round((hi - lo) / step) + 1;
  const few = count <= MOST_BUTTONS; // a scale may have billions of steps
  const choices = few ? Array.from({ length: count }, (_, place) => lo + place * step) : [];
  const digits = hi - lo > 20 ? 0 : 1;
  return {
    lo,
    hi,
    step,
    choices,
    control: implicit ? "have" : !few ? "slider" : lo === 1 && step === 1 && hi <= 7 ? "stars" : "buttons",
    implicit,
    digits: implicit ? 3 : 2, // of the parts of a score
    /** Return a score as people read it: kept within the scale, unless there are no ratings to speak of. */
    show: (score) => (implicit ? score.toFixed(2) : Math.min(hi, Math.max(lo, score)).toFixed(digits)),
    showRating: (rating) => String(Number(rating.toFixed(2))),
    /** Return which share of the scale a score fills, from 0 to 1. */
    share: (score) => Math.min(1, Math.max(0, implicit ? score : (score - lo) / (hi - lo))),
  };
}
