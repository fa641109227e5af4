{-# LANGUAGE TypeOperators #-}

-- The designated experiment: kernels of the paper on the arrays of challenge.txt, written as JSON to the file named.
module Main (main) where

import Data.Array.Repa as R
import Data.Array.Repa.Eval.Gang (gangSize, theGang)
import Data.Array.Repa.Stencil (Boundary (..), Stencil)
import Data.Array.Repa.Stencil.Dim2 (makeStencil2, mapStencil2)
import Data.List (intercalate)
import GHC.Conc (getNumCapabilities)
import System.Environment (getArgs)

type Plane = Array U DIM2 Double

-- Matrix multiplication of section 5: both factors replicated to a cube, multiplied, and summed along one side.
multiply :: Plane -> Plane -> IO Plane
multiply a b = sumP (R.zipWith (*) left right)
  where
    Z :. rows :. _ = extent a
    Z :. _ :. columns = extent b
    left = extend (Z :. All :. columns :. All) a
    right = extend (Z :. rows :. All :. All) (transpose b)

-- One step of section 6: the mean of the four neighbours where the mask is 1, the boundary's value where it is 0.
relax :: Plane -> Plane -> Plane -> IO Plane
relax mask fixed u =
  computeP (R.zipWith (+) fixed (R.zipWith (*) mask (R.map (/ 4) (mapStencil2 (BoundConst 0) neighbours u))))

neighbours :: Stencil DIM2 Double
neighbours = makeStencil2 3 3 weight
  where
    weight ix = case ix of
      Z :. -1 :. 0 -> Just 1
      Z :. 1 :. 0 -> Just 1
      Z :. 0 :. -1 -> Just 1
      Z :. 0 :. 1 -> Just 1
      _ -> Nothing
    {-# INLINE weight #-}

repeated :: Int -> (a -> IO a) -> a -> IO a
repeated 0 _ x = return x
repeated n f x = f x >>= repeated (n - 1) f

-- Shape-polymorphic: along the innermost dimension of an array of any rank, each element times its place, summed.
moments :: Shape sh => Array U (sh :. Int) Double -> IO (Array U sh Double)
moments a = sumP (R.traverse a id (\get ix@(_ :. place) -> fromIntegral (place + 1) * get ix))

main :: IO ()
main = do
  [out] <- getArgs
  [dims, as, bs, masks, fixeds, starts, cubes, tesseracts] <- lines <$> readFile "challenge.txt"
  let [n, k, m, height, width, steps, d1, d2, d3, d4] = Prelude.map read (words dims)
      array :: Shape sh => sh -> String -> Array U sh Double
      array shape = fromListUnboxed shape . Prelude.map read . words
      plane = Z :. height :. width
  capabilities <- getNumCapabilities
  product' <- multiply (array (Z :. n :. k) as) (array (Z :. k :. m) bs)
  relaxed <- repeated steps (relax (array plane masks) (array plane fixeds)) (array plane starts)
  rank3 <- moments (array (Z :. d1 :. d2 :. d3) cubes)
  rank4 <- moments (array (Z :. d1 :. d2 :. d3 :. d4) tesseracts)
  writeFile out . object $
    [ ("capabilities", show capabilities),
      ("gang", show (gangSize theGang)),
      ("product", show (toList product')),
      ("relaxed", show (toList relaxed)),
      ("rank3", show (toList rank3)),
      ("rank4", show (toList rank4))
    ]

object :: [(String, String)] -> String
object fields = "{" Prelude.++ intercalate ", " [show key Prelude.++ ": " Prelude.++ value | (key, value) <- fields] Prelude.++ "}\n"
